// SPDX-License-Identifier: Apache-2.0

package resource

import "sigs.k8s.io/controller-runtime/pkg/client"

// Object is an object of the Kubernetes API, of any kind.
type Object = client.Object

// ListObject is a list of objects of any kind.
type ListObject = client.ObjectList

// Client reads and writes objects of any kind.
type Client = client.Client
