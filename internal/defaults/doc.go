// SPDX-License-Identifier: Apache-2.0

// Package defaults sets the fields that an API server of Kubernetes 1.37 sets when it reads an object of a built-in
// kind: the static defaults of its versions, and on an update the values that it allocated or generated for the stored
// object. The in-memory API server applies them, and object managers expect them. Tests compare both with a real
// server.
//
// Each function changes the object that it receives and may replace values that the object points to. Values that it
// does not change stay shared.
package defaults
