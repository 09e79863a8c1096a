// SPDX-License-Identifier: Apache-2.0

// Package hotloop detects resources that a controller reconciles repeatedly because of its own previous reconcile, and
// delays their reconciles.
//
// A reconcile triggers the next one if it writes an object that the controller watches, or if it requests an immediate
// requeue. A few such reconciles are normal: a reconcile creates a child, the watch event triggers a reconcile of the
// parent, which writes the status, and the next watch event triggers a reconcile that writes nothing. A hot loop never
// reaches such a reconcile.
//
// A streak is a sequence of reconciles of one resource in which each reconcile triggered the next one. It ends when
//
//   - a reconcile writes nothing and requests no immediate requeue;
//   - the resource has a new generation that the controller did not write;
//   - a RequeueAfter of at least [Short] triggered the reconcile.
//
// Not every reconcile in a streak counts fully:
//
//   - A reconcile does not count if another client has changed an object that the reconcile reads and does not write.
//     For example, a Deployment that rolls out changes the status of its parent hundreds of times.
//   - A reconcile that writes an object for the first time in the streak counts a tenth, so that a reconciler can
//     create a set of children one by one.
//   - A write that does not change the object is not a write.
//   - A reconcile that fails does not count, because the queue backs off.
//
// A conflict is a field that the controller and another writer change back and forth. Conflicts can be slow, so they
// are detected independently of streaks: for each request that has written something, a history keeps hashes of the
// fields that the controller has written. If it writes the same value again although it has not changed the field
// itself, another client has overwritten it. If the server stores another value than the controller sends, a webhook
// has changed it. Five repetitions are a conflict. Other values are progress.
//
// An object that is created and deleted in turns is a conflict too: the controller has created, or has deleted, an
// object of the same name five times within a minute, and the resource has had no new generation.
//
// After half of the limit, requests are inspected: the package records what they read and how their writes change
// objects. Before that, the cost of a reconcile that writes nothing is two map lookups if the controller has recently
// written an object, and nothing otherwise. From the second reconcile that writes, writes are inspected.
package hotloop
