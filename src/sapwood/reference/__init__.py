"""The papers' pseudo-code as plain, slow, readable Python: the specification the core is held to."""
