// SPDX-License-Identifier: Apache-2.0

// Package hotloop finds resources that a controller reconciles again and again because of what its last reconcile did,
// and slows them down.
//
// A reconcile drives the next one when it writes an object that the controller watches, or when it asks for another one
// at once. That is normal a few times in a row: a child is created, its event reconciles the parent, the status is
// written, its event reconciles the parent, and then nothing is left to do. A hot loop never gets there.
//
// What counts is a row of such reconciles of one resource. The row ends with the first reconcile that has nothing to
// do, with a new generation of the resource that the controller did not write itself, and with a reconcile that a timer
// of at least [Short] has asked for. It does not grow while other clients change what the reconcile reads and does not
// write: a Deployment that rolls out moves the status of its parent hundreds of times. A reconcile that writes an
// object for the first time in the row counts a tenth, so that a set may create its children one by one. A write that
// leaves an object as it was is none. A reconcile that fails does not count at all, since the queue backs off.
//
// After half of the row the requests are inspected: what they read, and how their writes change objects. Until then all
// of this costs a look at a map for resources whose last reconcile wrote something, and nothing for the others.
package hotloop
