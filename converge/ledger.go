// SPDX-License-Identifier: Apache-2.0

package converge

// ledger counts what the process has created and deleted.
type ledger struct {
	created, deleted map[thing]int
	// live counts the existing objects that the process has created, and most is the maximum of live.
	live, most map[thing]int
	// lost counts the objects that the process has created and actors have deleted.
	lost map[thing]int
	// explained counts the interferences of other clients that require another creation or deletion.
	explained map[thing]int
}

func newLedger() ledger {
	return ledger{map[thing]int{}, map[thing]int{}, map[thing]int{}, map[thing]int{}, map[thing]int{}, map[thing]int{}}
}

// raise sets each number to at least that of another run.
func (l *ledger) raise(other ledger) {
	for _, pair := range [][2]map[thing]int{
		{l.created, other.created}, {l.deleted, other.deleted}, {l.most, other.most},
	} {
		for t, n := range pair[1] {
			pair[0][t] = max(pair[0][t], n)
		}
	}
}
