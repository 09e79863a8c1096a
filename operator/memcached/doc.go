// SPDX-License-Identifier: Apache-2.0

// Package memcached keeps the objects of an informer in memcached, so that they do not take the memory of the
// controller. See [operator.CustomCacheInformer] for what that means: memcached may lose entries, be restarted or be
// out of reach, and no event is lost by it.
//
//	store, err := memcached.NewStore(memcached.Config{
//		Addrs: []string{"10.0.0.1:11211", "10.0.0.2:11211"}, KeyPrefix: "mycontroller:",
//	})
//	...
//	informer, err := operator.NewCustomCacheInformer(kind, mgr, store, operator.InformerOptions{})
//
// Several processes, replicas of one controller for example, may use the same servers with the same prefix: then they
// share entries. Whoever can write to the servers cannot make a controller believe anything, since entries are checked,
// but can make it read from the API server.
//
// Do not keep kinds in memcached that are secret: its protocol has neither passwords nor encryption, unless the servers
// have TLS and DialContext uses it.
package memcached
