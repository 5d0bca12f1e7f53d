// SPDX-License-Identifier: Apache-2.0

package input

// Memory is what reading profiles may take, in bytes. It is divided, so that a request
// that waits for its turn to be decoded takes nothing from the one before.
type Memory int64

// Message is the most bytes of a request from the network, of which so many are received at
// once: each in two copies while it is unpacked, they take a half.
func (m Memory) Message(atOnce int) int64 { return int64(m) / (4 * int64(atOnce)) }

// file is the most bytes of a file that are looked at at once, unpacked.
func (m Memory) file() int64 { return int64(m) / 4 }

// decoded is the most that one request or file may take when it is decoded.
func (m Memory) decoded() int64 { return int64(m) / 2 }
