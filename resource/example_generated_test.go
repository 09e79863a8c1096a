// SPDX-License-Identifier: Apache-2.0

package resource_test

import (
	"fmt"

	"trueup.dev/resource"
)

type LinkSpec struct {
	Targets []string `json:"targets"`
}

func (s *LinkSpec) DeepCopyInto(out *LinkSpec) { _ = resource.CopyObjectInto(out, s) }

func ExampleCopyObjectInto() {
	spec, copied := &LinkSpec{Targets: []string{"a"}}, &LinkSpec{}
	spec.DeepCopyInto(copied)
	copied.Targets[0] = "b"
	fmt.Println(spec.Targets, copied.Targets)
	// Output:
	// [a] [b]
}

func ExampleWriteGrafanaAnnotation() {
	annotations := map[string]string{}
	if err := resource.WriteGrafanaAnnotation(annotations, "folder", "dashboards"); err != nil {
		fmt.Println(err)
	}
	fmt.Println(annotations)
	folder, err := resource.ReadGrafanaAnnotation[string](annotations, "folder")
	fmt.Println(folder, err)
	// Output:
	// map[grafana.com/folder:dashboards]
	// dashboards <nil>
}
