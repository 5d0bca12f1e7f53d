// SPDX-License-Identifier: Apache-2.0

//go:build !c

package main

func callC() {}
