// SPDX-License-Identifier: Apache-2.0

// Package integration has the tests that run reconcilers in a manager against a real Kubernetes API: what a fake client
// cannot tell, such as what triggers a controller, what the API server makes of a request, and what the garbage
// collector does. There is nothing in it but tests.
//
// Each test has a namespace and a manager of its own, and looks at what is stored with a client that has no cache.
package integration
