// SPDX-License-Identifier: Apache-2.0

package step

import (
	"slices"
	"sync/atomic"
)

// place is a step in the tree of all steps that were observed. It is shared by all reconciles, so that a path is
// allocated once.
type place struct {
	path  []string
	known atomic.Pointer[[]*place] // the steps below
}

// root is the place above all root reconcilers.
var root place

// maxPlaces limits the places below a place. Names may be data, although [Node.Item] says that they are not.
const maxPlaces = 100

// below returns the place of a step below p.
func (p *place) below(node Node) *place {
	name := node.Name
	known := p.known.Load()
	if known != nil {
		for _, below := range *known {
			if below.path[len(below.path)-1] == name {
				return below
			}
		}
	}
	below := &place{path: append(slices.Clip(p.path), name)}
	if node.Item || known != nil && len(*known) == maxPlaces {
		return below
	}
	all := []*place{below}
	if known != nil {
		all = append(slices.Clip(*known), below)
	}
	p.known.CompareAndSwap(known, &all) // if another reconcile was faster, the next one adds it
	return below
}
