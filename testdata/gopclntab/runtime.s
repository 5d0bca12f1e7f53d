// Functions without a body, which are those of package runtime, need an assembler file.
