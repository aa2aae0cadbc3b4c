-- Converts one text after another. `pandoc.py` asks with a line of JSON, which tells the size of the
-- text that follows it, and is answered alike.
while true do
  local line = io.read("l")
  if not line then break end
  local asked = pandoc.json.decode(line, false)
  local text = io.read(asked.size)
  local log, done, output = pandoc.log.silence(pcall, function()
    return pandoc.write(pandoc.read(text, asked.from, asked.reading), asked.to, asked.writing)
  end)
  local warnings = {}
  for _, message in ipairs(log) do
    table.insert(warnings, pandoc.json.decode(pandoc.json.encode(message), false).pretty)
  end
  output = tostring(output)
  local told = { done = done, size = #output, warnings = table.concat(warnings, "\n") }
  io.write(pandoc.json.encode(told), "\n", output)
  io.flush()
end
