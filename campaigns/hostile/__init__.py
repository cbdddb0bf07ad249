"""Small files of every format that ask for much work: each takes seconds in every function."""
