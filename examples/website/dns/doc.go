// SPDX-License-Identifier: Apache-2.0

// Package dns is an external system that a controller keeps in sync: a DNS service.
//
// [Provider] contains what a controller needs of such a system: publish, withdraw, look up. Publish and Withdraw are
// idempotent, because a reconciler runs again after every failure and every restart.
//
// [Directory] is a Provider without a network: one small file for each record, in a directory.
//
//	records := dns.NewDirectory("/var/lib/records")
//	err := records.Publish(ctx, dns.Record{Name: "www.example.com", Target: "10.0.0.7", Owner: "default/shop"})
package dns
