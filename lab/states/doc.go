// SPDX-License-Identifier: Apache-2.0

// Package states contains small reconcilers with bugs that users trigger by changing a spec, each with a version
// without the bug.
//
// converge.States is measured with it: it must find [All] bugs, and must not report a correct reconciler. The bugs are
// modeled on those that Acto (SOSP 2023) found in public operators. Its categories are
//
//	undesired  the state is not the one that the spec describes
//	error      an object stays in an error state, although the spec is valid again
//	outage     the operator panics, or does nothing but retry
//	ignored    a property has no effect
//
// One category is not Acto's. It is not a failure, but advice in the certificate, because it may be intended:
//
//	half       a change that is refused was made in part
package states
