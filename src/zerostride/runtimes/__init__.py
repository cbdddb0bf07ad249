"""The real engines: the one way to run an op, a node or a model file on them, in a child process.

`task` is the question and the answer, `runners` has one module an engine, `child` is the process
that loads one of them, `process` starts and asks it, `files` gives any tensors of a model file.
`probe` runs generated cases of single ops and compares them with predictions (`zerostride engines
--measure`); `verify` runs the broadcasts of a model, or the whole model; `bisect` finds the first
tensor in which two runs differ; `convert` brings a model to an engine.
In: cases, models. Out: the engine's results; a crash, a refusal and a timeout are results, too.
"""
