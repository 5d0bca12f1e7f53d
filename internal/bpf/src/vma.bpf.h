/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/*
 * What a process maps at an address, from the kernel's own tree of mappings: for a process
 * that user space has not looked at yet, or not since it has mapped other code. So the stacks
 * of a process that has just begun are walked by the rows of files that others map as well,
 * and what has moved is not taken for what was there before.
 *
 * The tree may be changed by another thread while it is read. Nothing is followed but by
 * reads that may fail, and what is found has to belong to the process and hold the address.
 */
#ifndef CUSTOM_LABELS_VMA_H
#define CUSTOM_LABELS_VMA_H

#include "seal.bpf.h"

/* include/linux/maple_tree.h, unchanged since mappings are in such a tree (Linux 6.1). */
#define MAPLE_LEVELS 6 /* of at least 5 children each */
#define MAPLE_NODE_MASK 255UL
#define MAPLE_ROOT 2
#define MAPLE_PIVOTS_OFFSET 8	     /* struct maple_range_64: parent, pivot[15], slot[16] */
#define MAPLE_RANGE_SLOTS_OFFSET 128 /* the same */
#define MAPLE_ARANGE_SLOTS_OFFSET 80 /* struct maple_arange_64: parent, pivot[9], slot[10] */
#define MAPLE_ARANGE_PIVOTS 9

/* The upper bits say whether somebody has asked for the time (I_CTIME_QUERIED, include/linux/fs.h). */
#define CTIME_NSEC_MASK 0x3fffffff

enum maple_type {
	MAPLE_LEAF_64 = 1,
	MAPLE_RANGE_64 = 2,
	MAPLE_ARANGE_64 = 3,
};

/* The contents of a file that the kernel knows. */
static __always_inline void fill_file_key(struct file_key *key, struct inode *inode)
{
	struct inode___6_10 *older = (void *)inode;
	struct inode___6_5 *oldest = (void *)inode;

	__builtin_memset(key, 0, sizeof(*key));
	key->inode = BPF_CORE_READ(inode, i_ino);
	key->dev = BPF_CORE_READ(inode, i_sb, s_dev);
	key->size = BPF_CORE_READ(inode, i_size);
	/* Unlike the time of modification, it cannot be set. */
	if (bpf_core_field_exists(inode->i_ctime_sec)) {
		key->changed_s = BPF_CORE_READ(inode, i_ctime_sec);
		key->changed_ns = BPF_CORE_READ(inode, i_ctime_nsec) & CTIME_NSEC_MASK;
	} else if (bpf_core_field_exists(older->__i_ctime)) {
		key->changed_s = BPF_CORE_READ(older, __i_ctime.tv_sec);
		key->changed_ns = BPF_CORE_READ(older, __i_ctime.tv_nsec);
	} else {
		key->changed_s = BPF_CORE_READ(oldest, i_ctime.tv_sec);
		key->changed_ns = BPF_CORE_READ(oldest, i_ctime.tv_nsec);
	}
}

/* The slot of the tree for an address, 0 if there is none. */
static __always_inline __u64 maple_slot(struct vma_walk *v, struct mm_struct *mm, __u64 pc)
{
	__u64 entry = (__u64)BPF_CORE_READ(mm, mm_mt.ma_root);

	if ((entry & 3) != MAPLE_ROOT)
		return 0;
	for (int level = 0; level < MAPLE_LEVELS; level++) {
		__u64 node = entry & ~MAPLE_NODE_MASK;
		__u32 type = entry >> 3 & 15, pivots = MAPLE_PIVOTS, slots = MAPLE_RANGE_SLOTS_OFFSET, i;

		if (type == MAPLE_ARANGE_64) {
			pivots = MAPLE_ARANGE_PIVOTS;
			slots = MAPLE_ARANGE_SLOTS_OFFSET;
		} else if (type != MAPLE_LEAF_64 && type != MAPLE_RANGE_64) {
			return 0;
		}
		if (bpf_probe_read_kernel(v->pivots, sizeof(v->pivots), (const void *)(node + MAPLE_PIVOTS_OFFSET)))
			return 0;
		for (i = 0; i < MAPLE_PIVOTS; i++) {
			if (i >= pivots || v->pivots[i] >= pc)
				break;
		}
		if (bpf_probe_read_kernel(&entry, sizeof(entry), (const void *)(node + slots + 8 * i)))
			return 0;
		if (type == MAPLE_LEAF_64)
			return entry;
	}
	return 0;
}

enum vma_kind {
	VMA_NONE,
	VMA_ANONYMOUS,
	VMA_FILE, /* or the vDSO, which has the key without a file */
};

/*
 * Fills v with the mapping of the current process that holds pc, and tells what it shows. Not
 * static, as the searches of rows.bpf.h are not: the verifier goes through it once.
 */
SEPARATE int find_vma(struct vma_walk *v, __u64 pc)
{
	struct task_struct *task = current_task();
	struct mm_struct *mm = FIELD(task, mm);
	struct vm_area_struct *vma;
	struct file *file;

	if (!has_mapping_tree() || !v || !mm)
		return VMA_NONE;
	vma = (struct vm_area_struct *)maple_slot(v, mm, pc);
	if (!vma || (__u64)vma & 3 || BPF_CORE_READ(vma, vm_mm) != mm)
		return VMA_NONE;
	v->start = BPF_CORE_READ(vma, vm_start);
	v->limit = BPF_CORE_READ(vma, vm_end);
	if (pc < v->start || pc >= v->limit)
		return VMA_NONE;
	file = BPF_CORE_READ(vma, vm_file);
	if (file) {
		fill_file_key(&v->key, BPF_CORE_READ(file, f_inode));
		v->page = BPF_CORE_READ(vma, vm_pgoff);
		return VMA_FILE;
	}
	if (v->start != (__u64)BPF_CORE_READ(mm, context.vdso))
		return VMA_ANONYMOUS;
	__builtin_memset(&v->key, 0, sizeof(v->key));
	v->page = 0;
	return VMA_FILE;
}

/* Makes w->mapping the one in w->vma, if w->rows describe it. */
static __always_inline bool use_known_rows(struct stack_walk *w)
{
	const struct known_rows *known = &w->rows;

	for (int i = 0; i < MAX_FILE_TEXTS; i++) {
		const struct file_text *t = &known->texts[i];

		if (w->vma.page < t->first_page || w->vma.page >= t->limit_page)
			continue;
		w->mapping.text = w->vma.start - w->vma.page * page_bytes + t->text;
		w->mapping.table_id = known->table_id;
		w->mapping.slot = known->slot;
		w->mapping.blocks = known->blocks;
		return true;
	}
	return false;
}

/*
 * Makes w->mapping the one that holds pc, if its file's rows are known. Code that belongs to
 * no file is generated at run time, and keeps frame pointers.
 */
static __always_inline bool find_vma_mapping(struct stack_walk *w, __u64 pc)
{
	struct known_rows *known;
	struct file_key key; /* on the stack: Linux 6.1 takes a key from nowhere else here */
	int kind;

	kind = find_vma(&w->vma, pc);
	if (kind == VMA_FILE) {
		__builtin_memcpy(&key, &w->vma.key, sizeof(key));
		known = bpf_map_lookup_elem(&file_rows, &key);
		if (known)
			copy_element(&w->rows, known);
		if (known && w->rows.seal == seal_of(&w->rows, &key) && use_known_rows(w)) {
			w->mapping.start = w->vma.start;
			w->mapping.limit = w->vma.limit;
			return true;
		}
	}
	if (kind != VMA_ANONYMOUS)
		w->guessed = 1;
	if (kind != VMA_NONE) {
		w->bare_start = w->vma.start;
		w->bare_limit = w->vma.limit;
	}
	w->mapping.start = w->mapping.limit = 0;
	return false;
}

#endif
