//go:build !unix

package symbol

func mapBytes(int) []byte { return nil }

func unmapBytes([]byte) {}

func entriesIn([]byte) []entry { return nil }
