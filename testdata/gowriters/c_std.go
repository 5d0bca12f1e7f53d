// SPDX-License-Identifier: Apache-2.0

//go:build n

package main

import _ "net" // with C code, where that is on
