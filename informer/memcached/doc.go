// SPDX-License-Identifier: Apache-2.0

// Package memcached keeps the objects of an informer in memcached, to save memory of the controller. As
// [informer.CustomCache] documents, memcached may lose entries, restart or be unreachable, and no event is
// lost. The package is a module of its own, so that others do not depend on the client of memcached:
//
//	go get trueup.dev/informer/memcached
//
// A store is created with the addresses of the servers:
//
//	store, err := memcached.NewStore(memcached.Config{
//		Addrs: []string{"10.0.0.1:11211", "10.0.0.2:11211"}, KeyPrefix: "mycontroller:",
//	})
//	...
//	informer, err := informer.NewCustomCache(kind, mgr, store, informer.Options{})
//
// Several processes, for example replicas of one controller, may use the same servers with the same prefix. They then
// share entries. The informer verifies entries: a client that can write to the servers cannot make a controller accept
// wrong data, but can force it to read from the API server.
//
// Do not keep secret kinds in memcached: its protocol has neither passwords nor encryption, unless the servers support
// TLS and DialContext uses it.
package memcached
