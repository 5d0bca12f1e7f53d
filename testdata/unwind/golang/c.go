//go:build c

package main

/*
static unsigned long sink;
static void spin(unsigned long count)
{
	while (count--)
		__asm__ volatile("" : "+r"(sink));
}
__attribute__((noinline)) void w_c_inner(unsigned long count)
{
	spin(count);
	__asm__ volatile("");
}
__attribute__((noinline)) void w_c_outer(unsigned long count)
{
	w_c_inner(count);
	__asm__ volatile("");
}
*/
import "C"

//go:noinline
func w_cgo() {
	C.w_c_outer(200_000)
}

func init() {
	cases = append(cases, testCase{"cgo", "w_cgo;?8;+w_c_outer;+w_c_inner", 20, w_cgo})
}
