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
// Differences from a real server:
//   - Responses are always JSON. Requests are JSON or, for kinds that client-go knows, protobuf.
//   - Tables, aggregated discovery, OpenAPI, and kinds that are only requests, for example access reviews, are not
//     served.
//   - A delete always returns a Status, not the deleted object.
//   - A watch ignores timeoutSeconds. It ends when its client or the server ends it.
//   - All warnings are missing, and fieldValidation is ignored.
package httpapi
