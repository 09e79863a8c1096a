// SPDX-License-Identifier: Apache-2.0

// Package v1 is version v1 of MyKind. It has no generated code.
package v1

import "trueup.dev/resource"

// MyKindSpec is what the app reports to the other system.
type MyKindSpec struct {
	SomeInfo  string `json:"someInfo"`
	OtherInfo string `json:"otherInfo"`
}

// MyKindStatus records which generation the other system has.
type MyKindStatus struct {
	LastAppliedGeneration int64 `json:"lastAppliedGeneration,omitempty"`
}

type (
	// MyKind is a kind with a spec and a status.
	MyKind = resource.TypedSpecStatusObject[MyKindSpec, MyKindStatus]
	// MyKindList is a list of MyKinds.
	MyKindList = resource.TypedList[MyKind]
)

// Kind is the kind MyKind.
func Kind() resource.Kind {
	return resource.Kind{
		Schema: resource.NewSimpleSchema("example.com", "v1", &MyKind{}, &MyKindList{}, resource.WithKind("MyKind")),
	}
}
