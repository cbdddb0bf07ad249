"""The native engine against the reference: drawn calls, judged, made smaller."""
