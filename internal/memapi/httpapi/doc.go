// SPDX-License-Identifier: Apache-2.0

// Package httpapi answers the HTTP requests of Kubernetes clients without a network: a [Transport] translates each
// request to a call of a controller-runtime client, for example one of package memapi.
//
//	config := &rest.Config{Host: "http://memory", Transport: &httpapi.Transport{Client: c, Registry: registry}, QPS: -1}
//	clientset, err := kubernetes.NewForConfig(config)
//
// Clientsets, the dynamic client, the metadata client, discovery and informers of client-go work with it. Objects are
// passed to the client unstructured, or as PartialObjectMetadata if the request asks for it.
//
// Tables, aggregated discovery, OpenAPI v3 documents and access reviews are served, too. All users are
// allowed everything.
//
// Events of events.k8s.io are the same objects as events of the core group, if Transport.Server is set.
//
// Differences from a real server:
//   - Responses are always JSON. Requests are JSON, YAML or, for kinds that client-go knows, protobuf.
//   - OpenAPI v2 is not served.
//   - Without Transport.Server, a delete returns a Status, not the deleted object, and fields are not validated.
//   - A watch ignores timeoutSeconds: it ends when its context ends.
//   - There are no warnings except those about unknown and duplicate fields.
package httpapi
