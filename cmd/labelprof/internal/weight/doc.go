// SPDX-License-Identifier: Apache-2.0

// Package weight estimates the memory that bytes take when they are decoded, without
// decoding them: two bytes of protobuf can stand for hundreds in memory.
//
// An estimate is never below what is taken, whatever the bytes are. It goes over them once,
// keeps nothing of them, and ends as soon as it is above the limit. What a format takes is
// the caller's to say, as a Shape. JSON is estimated by its objects, texts and commas alone.
package weight
