"""Bring an environment in line with a list here: `python install.py book|test|torch`.

`book` and `test` are locks, for `.venv`, which uv brings in a sixth of pip's time. `torch` are
pins, for `.venv-torch`: its wheels differ by where they come from, for processors or for GPUs, so
they have no hashes here, and pip brings them, whose settings say where from.

The Makefile runs this before anything else; where nothing has changed it costs a tenth of a second.
It runs on whatever Python the reader has, so it is written to load on an old one, and to say so.
"""

import fcntl
import hashlib
import os
import shutil
import subprocess
import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[1]
VENV = ROOT / (".venv-torch" if sys.argv[1:] == ["torch"] else ".venv")
VENV_PYTHON = VENV / "bin" / "python"
WIDER = {"book": "test"}  # a lock that holds all of another, in the same versions
TORCH_GIB = 4  # of which torch, numba, Triton and what they need take 2.6, and wheels the rest


def main(lock_name: str) -> None:
    check_this_python()
    wait_for_others()
    if not environment_works():
        make_environment()
    if is_installed(lock_name) or is_installed(WIDER.get(lock_name, lock_name)):
        return
    lock = lock_file(lock_name)
    if lock_name == "torch":
        check_disk()
    print(f"Installing what {lock.name} lists into {VENV.name} (can take a minute) ...", flush=True)
    if lock_name == "torch":
        pip_install("-r", str(lock))
    else:
        pip_install("--require-hashes", "-r", str(lock_file("uv")))
        install_locked(lock)
    # Then the checkout itself: its build tool came with the lock, so nothing more is fetched.
    pip_install("--no-deps", "--no-build-isolation", "-e", str(ROOT))
    stamp(lock_name).write_text(fingerprint(lock_name))


def check_this_python() -> None:
    version = sys.version.split()[0]
    if sys.version_info < (3, 11):  # noqa: UP036 (told, not assumed)
        sys.exit(
            f"Python 3.11 or newer is needed, and {sys.executable} is {version}. "
            "Name a newer one, for example: make book PYTHON=python3.11"
        )
    try:
        import ensurepip  # noqa: F401
        import venv  # noqa: F401
    except ImportError:
        sys.exit(
            f"{sys.executable} comes without its venv module, which is needed. "
            "On Debian and Ubuntu it is in the package python3-venv."
        )


def check_disk() -> None:
    free = shutil.disk_usage(ROOT).free / 2**30
    if free < TORCH_GIB:
        sys.exit(
            f"Installing torch, numba and Triton into {VENV} needs {TORCH_GIB} GiB of free disk,"
            f" and there are {free:.1f} GiB; make room there, or check out on a larger disk."
        )


def wait_for_others() -> None:
    """Two `make` at once take turns at an environment: the lock goes when the process ends."""
    locked = Path(__file__) if VENV.name == ".venv-torch" else HERE
    fcntl.flock(os.open(locked, os.O_RDONLY), fcntl.LOCK_EX)


def environment_works() -> bool:
    """Return whether the environment runs, has pip, and is of this Python's version."""
    probe = "import pip, sys; print(sys.version_info[:2])"
    command = [str(VENV_PYTHON), "-c", probe]
    try:
        answer = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    except (OSError, subprocess.CalledProcessError):
        return False
    return answer.strip() == str(sys.version_info[:2])


def make_environment() -> None:
    if VENV.is_dir() and not VENV.is_symlink():
        shutil.rmtree(VENV)
    elif VENV.exists() or VENV.is_symlink():
        VENV.unlink()
    print(
        f"Making the environment {VENV.name} with Python {sys.version.split()[0]} ...", flush=True
    )
    run(sys.executable, "-m", "venv", str(VENV))


def lock_file(lock_name: str) -> Path:
    return HERE / f"{lock_name}.txt"


def stamp(lock_name: str) -> Path:
    """Return the file in the environment that keeps the fingerprint of what it was made from."""
    return VENV / f"{lock_name}.stamp"


def is_installed(lock_name: str) -> bool:
    file = stamp(lock_name)
    return file.is_file() and file.read_text() == fingerprint(lock_name)


def fingerprint(lock_name: str) -> str:
    """Return a digest of what the environment is made from, and of the checkout's place: once that
    is moved or copied, the environment still imports `calc` from the old place."""
    digest = hashlib.sha256(os.fsencode(ROOT))
    for file in (lock_file(lock_name), ROOT / "pyproject.toml"):
        digest.update(file.read_bytes())
    return digest.hexdigest() + "\n"


def pip_install(*arguments: str) -> None:
    quietly = ("--quiet", "--quiet", "--no-input", "--disable-pip-version-check")
    run(str(VENV_PYTHON), "-m", "pip", "install", *quietly, *arguments)


def install_locked(lock: Path) -> None:
    """Install a lock by uv, or else by pip, which knows mirrors of its settings: the same files."""
    options = ("install", "--quiet", "--require-hashes", "-r", str(lock))
    uv = str(VENV / "bin" / "uv")
    if subprocess.run([uv, "pip", *options, "--python", str(VENV_PYTHON)]).returncode:
        print("uv could not; pip installs the same.", flush=True)
        pip_install("--require-hashes", "-r", str(lock))


def run(*command: str) -> None:
    if subprocess.run(command).returncode:
        sys.exit(f"The environment {VENV.name} is not complete; the message above says why.")


if __name__ == "__main__":
    main(sys.argv[1])
