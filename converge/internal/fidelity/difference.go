// SPDX-License-Identifier: Apache-2.0

package fidelity

import (
	"slices"
	"strings"
	"sync/atomic"
)

// A Difference is a way in which our server is known not to be a real one. It is as narrow as it can be.
type Difference struct {
	// Name is that of the line in the documentation of this package.
	Name string

	// Excuses reports whether a divergence is of this kind.
	Excuses func(Divergence) bool

	used atomic.Int64
}

// Differences are those that are known. None is nil.
type Differences struct {
	known []*Difference
}

// KnownDifferences returns all that are documented.
func KnownDifferences() *Differences {
	return &Differences{known: []*Difference{
		{Name: "managed-fields", Excuses: func(d Divergence) bool {
			return strings.HasSuffix(d.Path, ".metadata.managedFields") && d.Ours == nil && !d.applied
		}},
	}}
}

func (d *Differences) excuse(divergence Divergence) bool {
	if d == nil {
		return false
	}
	for _, difference := range d.known {
		if difference.Excuses(divergence) {
			difference.used.Add(1)
			return true
		}
	}
	return false
}

// Used returns how often each difference was met, by its name.
func (d *Differences) Used() map[string]int64 {
	used := map[string]int64{}
	for _, difference := range d.known {
		used[difference.Name] = difference.used.Load()
	}
	return used
}

// Without returns the differences but for one.
func (d *Differences) Without(name string) *Differences {
	return &Differences{known: slices.DeleteFunc(slices.Clone(d.known), func(difference *Difference) bool { return difference.Name == name })}
}
