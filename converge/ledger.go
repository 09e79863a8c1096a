// SPDX-License-Identifier: Apache-2.0

package converge

import "trueup.dev/converge/internal/state"

// ledger counts what the process has created and deleted.
type ledger struct {
	created, deleted map[state.Thing]int
	// live counts the existing objects that the process has created, and most is the maximum of live.
	live, most map[state.Thing]int
	// lost counts the objects that the process has created and actors have deleted.
	lost map[state.Thing]int
	// explained counts the interferences of other clients that require another creation or deletion.
	explained map[state.Thing]int
}

func newLedger() ledger {
	return ledger{map[state.Thing]int{}, map[state.Thing]int{}, map[state.Thing]int{}, map[state.Thing]int{}, map[state.Thing]int{}, map[state.Thing]int{}}
}

// raise sets each number to at least that of another run.
func (l *ledger) raise(other ledger) {
	for _, pair := range [][2]map[state.Thing]int{
		{l.created, other.created}, {l.deleted, other.deleted}, {l.most, other.most},
	} {
		for t, n := range pair[1] {
			pair[0][t] = max(pair[0][t], n)
		}
	}
}
