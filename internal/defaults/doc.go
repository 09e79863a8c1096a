// SPDX-License-Identifier: Apache-2.0

// Package defaults fills in what an API server of Kubernetes 1.37 fills in when it reads an object of a built-in kind: the static defaults of its versions,
// and on an update what it has allocated or generated for the stored object. The API server in memory serves them, and object managers expect them. Tests
// compare both with a real server.
//
// Each function changes the object that it gets and may replace what that points to, but what it leaves as it is stays shared.
package defaults
