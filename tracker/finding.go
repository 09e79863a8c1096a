// SPDX-License-Identifier: Apache-2.0

package tracker

import (
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/types"
)

// fewNames is the number of names up to which a linear search is faster than a map.
const fewNames = 16

// finding collects the names of observers, each once.
type finding struct {
	now   time.Duration
	names []types.NamespacedName
	// seen holds the names once there are more than fewNames. It is only needed if names can repeat, because they come
	// from several targets or kinds of observer.
	seen map[types.NamespacedName]struct{}
}

// add adds the observers of a target whose tracks have not expired.
func (f *finding) add(on *target) {
	distinct := len(f.names) == 0 && !on.mixed
	f.names = slices.Grow(f.names, len(on.tracks))
	for _, tr := range on.tracks {
		if !tr.expired(f.now) && (distinct || f.isNew(tr.name)) {
			f.names = append(f.names, tr.name)
		}
	}
}

func (f *finding) isNew(name types.NamespacedName) bool {
	if f.seen == nil {
		if len(f.names) <= fewNames {
			return !slices.Contains(f.names, name)
		}
		f.seen = make(map[types.NamespacedName]struct{}, 2*len(f.names))
		for _, known := range f.names {
			f.seen[known] = struct{}{}
		}
	}
	before := len(f.seen)
	f.seen[name] = struct{}{}
	return len(f.seen) > before
}
