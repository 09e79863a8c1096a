// SPDX-License-Identifier: Apache-2.0

// Package filters tests the console behind the authentication and authorization filter of controller-runtime, on a real
// API server. The main module does not depend on that filter, which needs modules that most controllers do not have.
package filters
