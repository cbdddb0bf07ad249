"""Arrays of other libraries compared with the reference: drawn calls, judged by value and type."""
