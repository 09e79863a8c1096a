// SPDX-License-Identifier: Apache-2.0

// Package apiserver serves an API in memory on the loopback interface, with what a cluster has beside its API server:
// the garbage collector, the namespace controller, the controllers of workloads, and a simulated node.
//
//	s, err := apiserver.Start(apiserver.Options{})
//	if err != nil {
//		return err
//	}
//	defer s.Stop()
//	client, err := kubernetes.NewForConfig(s.RESTConfig())
//
// It guarantees:
//
//   - It listens on 127.0.0.1 only, with TLS. Each request needs a random token, and has to be sent to the loopback
//     address by number or as localhost, and not through a proxy, so that a page in a browser cannot use it. The
//     kubeconfig has mode 0600.
//   - Requests run one after the other. Watches receive events as they occur.
//   - CustomResourceDefinitions are served when their creation returns. When one is deleted, its objects are deleted,
//     and it is no longer served when the last one has gone.
//   - The last 10,000 changes are kept. Lists and watches from older versions fail with the status 410.
//   - Its private directory is removed when it stops, and the directory of a killed process at the next start.
//
// Packages memapi, kinds and httpapi list what differs from a real server.
package apiserver
