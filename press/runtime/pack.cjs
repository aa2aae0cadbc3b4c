/* Packs Python's library and a site's packages as bytecode of the very Python that will run them:
   compiled in a browser, each start would take seconds longer.

   node pack.cjs FOLDER, where FOLDER/site holds the packages; it writes library.zip, site.zip and
   lock.json beside it. The files of the zips are not compressed, since what holds them is. */
const { loadPyodide } = require("pyodide");
const { readFileSync, writeFileSync } = require("node:fs");
const { dirname, join } = require("node:path");

/* Of the library, what needs a terminal, processes, a screen, sound, a network or another system, takes programs apart,
   or is the slow copy of a module that is compiled in; and code pages of other systems. */
const LEFT_OUT = [
  "_android_support.py", "_apple_support.py", "_pydatetime.py", "_pyio.py", "_pyrepl/", "asyncio/proactor_events.py",
  "asyncio/windows_events.py", "asyncio/windows_utils.py", "bdb.py", "cProfile.py", "cmd.py", "compileall.py",
  "concurrent/futures/process.py", "ctypes/_aix.py", "ctypes/wintypes.py", "curses/", "dbm/", "doctest.py",
  "encodings/cp1", "encodings/cp7", "encodings/cp8", "encodings/cp9", "encodings/mac_", "ensurepip/", "filecmp.py",
  "fileinput.py", "ftplib.py", "getpass.py", "http/", "idlelib/", "imaplib.py", "lib2to3/", "logging/config.py",
  "logging/handlers.py", "mailbox.py", "mimetypes.py", "modulefinder.py", "multiprocessing/", "netrc.py",
  "optparse.py", "pdb.py", "pickletools.py", "plistlib.py", "poplib.py", "profile.py", "pstats.py", "pty.py",
  "pyclbr.py", "pydoc.py", "pydoc_data/", "sched.py", "shelve.py", "smtplib.py", "socketserver.py", "sqlite3/",
  "symtable.py", "tabnanny.py", "tarfile.py", "test/", "tkinter/", "trace.py", "turtle.py", "turtledemo/",
  "unittest/", "urllib/request.py", "urllib/robotparser.py", "venv/", "wave.py", "webbrowser.py", "wsgiref/", "xml/",
  "xmlrpc/", "zipapp.py",
];

const PROGRAM = `
from importlib import _bootstrap_external as bootstrap
from pathlib import Path
from zipfile import ZipFile, ZipInfo
import sys

def bytecode(source, file, optimize):
    code = compile(source, file, "exec", dont_inherit=True, optimize=optimize)
    return bootstrap._code_to_hash_pyc(code, bytes(8), False)  # which is never checked again

def pack(files, place, out, optimize):
    with ZipFile(out, "w") as packed:
        for name, data in sorted(files.items()):
            if name.endswith(".py"):
                name, data = name + "c", bytecode(data, f"{place}/{name}", optimize)
            packed.writestr(ZipInfo(name), data)

library = f"/lib/python{sys.version_info.major}{sys.version_info.minor}.zip"
with ZipFile(library) as zipped:
    names = [name for name in zipped.namelist() if not name.endswith("/")]
    kept = {name: zipped.read(name) for name in names if not name.startswith(tuple(LEFT_OUT))}
pack(kept, library, "/work/library.zip", 2)

packages = next(path for path in sys.path if path.endswith("site-packages"))
site = Path("/work/site")
found = {
    path.relative_to(site).as_posix(): path.read_bytes() for path in site.rglob("*") if path.is_file()
}
pack(found, packages, "/work/site.zip", 0)
`;

async function main(folder) {
  const python = await loadPyodide({ env: { PYTHONHASHSEED: "0" } }); // so that builds repeat
  python.FS.mkdir("/work");
  python.FS.mount(python.FS.filesystems.NODEFS, { root: folder }, "/work");
  python.globals.set("LEFT_OUT", python.toPy(LEFT_OUT));
  python.runPython(PROGRAM);
  const lock = join(dirname(require.resolve("pyodide")), "pyodide-lock.json");
  const { info } = JSON.parse(readFileSync(lock, "utf8"));
  writeFileSync(join(folder, "lock.json"), JSON.stringify({ info, packages: {} }));
}

main(process.argv[2]).catch((error) => {
  console.error(String(error));
  process.exitCode = 1;
});
