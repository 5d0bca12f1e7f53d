package record

// Mix goes on with a hash as mix of seal.bpf.h does: what the programs are told, and what they tell, is compared by it.
func Mix(hash, word uint64) uint64 {
	hash = (hash ^ word) * 0x9e3779b97f4a7c15
	return hash ^ hash>>32
}
