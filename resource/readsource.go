// SPDX-License-Identifier: Apache-2.0

package resource

// ReadSource selects where a store reads from. Passed to a store it is the default of all reads, passed to a read it
// applies to that read.
type ReadSource string

const (
	// Cached reads with the client of the store, from its cache if it has one. It is the default. The result may be older
	// than the stored object.
	Cached ReadSource = "Cached"
	// Live reads from the API server.
	Live ReadSource = "Live"
)

// StoreOption changes a default of a store.
type StoreOption interface{ applyToStore(*storeOptions) }

type storeOptions struct{ source ReadSource }

func (s ReadSource) applyToStore(o *storeOptions) { o.source = s }
