// SPDX-License-Identifier: Apache-2.0

// Package trueup is the root of a framework for Kubernetes controllers. It holds no code; start with one of these:
//
//   - [trueup.dev/reconcilers]: compose a controller from small reconcilers
//   - [trueup.dev/operator], [trueup.dev/simple], [trueup.dev/app], [trueup.dev/resource], [trueup.dev/logging]: the event
//     style, with the names of Grafana App SDK: handlers of changes, apps made of them, kinds and stores, a logger
//   - [trueup.dev/informer]: the objects of a kind from a source other than the cache of the manager
//   - [trueup.dev/apis]: status and conditions of your resources
//   - [trueup.dev/tracker]: follow objects you depend on and do not own
//   - [trueup.dev/stash], [trueup.dev/time]: what lives as long as one request
//   - [trueup.dev/duck]: work with objects of which only a part is known
//   - [trueup.dev/testing]: table tests of reconcilers and webhooks
//   - [trueup.dev/sandbox]: a real Kubernetes API for tests and programs, in one local process
//
// The command trueup.dev/cmd/trueup shows it at work.
package trueup
