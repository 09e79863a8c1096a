// SPDX-License-Identifier: Apache-2.0

// Package integration contains tests that run reconcilers in a manager against a real Kubernetes API. They cover what a
// fake client cannot show, such as the triggers of a controller, the responses of the API server, and garbage
// collection. The package contains only tests.
//
// Each test has its own namespace and manager, and checks stored objects with a client without a cache.
package integration
