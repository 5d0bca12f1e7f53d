/* SPDX-License-Identifier: Apache-2.0 */
#ifndef WRITERS_MODES_H
#define WRITERS_MODES_H

void mode_shares(void);	  /* tenants with known shares of the CPU time */
void mode_switch(void);	  /* one thread, one function, a log of every switch */
void mode_fidelity(void); /* values that prove themselves, swapped very often */
void mode_spin(void);	  /* fixed labels, for benchmarks */
void mode_updates(void);  /* a process context that comes late and grows */
void mode_late(void);	  /* one that comes late, after much code */
void mode_blocks(void);	  /* waits of known length, off the CPU */
void mode_storm(void);	  /* threads that do nothing but switch */
void mode_brief(void);	  /* a short life */
void mode_churn(void);	  /* processes that come and go */
void mode_turn(void);	  /* one of them */
void mode_flood(void);	  /* as many label sets, keys and stacks as there can be */
void mode_hostile(void);  /* what no writer should publish */
void hostile_list(void);

#endif
