"""The application shell: loading and watching captures, choosing one, exporting, key queue, signals."""
