// SPDX-License-Identifier: Apache-2.0

package resource

// ReadSource says where a store reads from. Given to a store it is the default of all reads, given to a read it holds for that one.
type ReadSource string

const (
	// Cached reads with the client of the store, from its cache if it has one. It is the default: what is read may be older than what is stored.
	Cached ReadSource = "Cached"
	// Live reads from the API server.
	Live ReadSource = "Live"
)

// StoreOption changes a default of a store.
type StoreOption interface{ applyToStore(*storeOptions) }

type storeOptions struct{ source ReadSource }

func (s ReadSource) applyToStore(o *storeOptions) { o.source = s }
