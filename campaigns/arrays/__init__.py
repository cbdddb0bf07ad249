"""Arrays of other libraries against the reference: drawn calls, judged by value and kind."""
