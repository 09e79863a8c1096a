// SPDX-License-Identifier: Apache-2.0

// Package dns stands for a system outside Kubernetes that a controller has to keep in line: here, a DNS service.
//
// [Provider] is the little a controller needs of such a system: publish, withdraw, look up. Both writes may be repeated
// at any time without harm, because a reconciler runs again after every failure and after every restart.
//
// [Directory] is a Provider without a network: one small file per record, in a folder.
//
//	records := dns.NewDirectory("/var/lib/records")
//	err := records.Publish(ctx, dns.Record{Name: "www.example.com", Target: "10.0.0.7", Owner: "default/shop"})
package dns
