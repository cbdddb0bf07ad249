"""The native engine compared with the reference: drawn calls, judged, shrunk."""
