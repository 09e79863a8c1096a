// SPDX-License-Identifier: Apache-2.0

// Package console serves web pages that show what the controllers of a program do: which objects are in trouble, why
// each object was reconciled, which steps and calls that took, what failed, and which permissions are missing.
//
// One line adds it to a manager, before the manager starts:
//
//	err := console.AddToManager(mgr, console.Options{})
//
// The pages are then at /console/ of the metrics server of the manager. They need no access to the internet, and change
// nothing: only GET and HEAD are answered. Each page is JSON for requests with "Accept: application/json", and a stream
// of server-sent events, which are the changed content of the page, for requests with "Accept: text/event-stream".
//
// # Access
//
// The filter of the metrics server protects the pages, as it protects the metrics:
//
//	metricsserver.Options{
//		SecureServing:  true,
//		FilterProvider: filters.WithAuthenticationAndAuthorization,
//	}
//
// With this filter of controller-runtime, requests need a token of a user who may get the URL:
//
//	rules:
//	- nonResourceURLs: ["/console", "/console/*"]
//	  verbs: ["get"]
//
// On a server without a filter, the pages are only served to the same machine or pod, which includes kubectl
// port-forward: the client connects from 127.0.0.1 or ::1, names localhost or a loopback address as the host, and the
// request has no header that proxies add, such as X-Forwarded-For. The same applies to [Options.Address].
//
// A proxy in the pod that forwards TCP without such a header connects from the same addresses: all its clients can read
// the pages if they send "Host: localhost". In a service mesh, use the filter above, or keep the port of the pages out
// of the sidecar. For Istio, that is the annotation
//
//	traffic.sidecar.istio.io/excludeInboundPorts: "8080"
//
// The page of permissions shows what the identity of the program may do, not what the reader may do. It asks the API
// server with reviews, which each user may send and which persist nothing, only while the page is open.
//
// Values of Secrets are never shown. See [trueup.dev/observe/recorder] for other values that must not be shown.
package console
