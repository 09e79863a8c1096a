// SPDX-License-Identifier: Apache-2.0

package app_test

import (
	"context"
	"fmt"

	"trueup.dev/app"
)

func ExampleManifestData() {
	manifest := app.ManifestData{
		AppName: "widgets",
		Group:   "example.com",
		Versions: []app.ManifestVersion{{
			Name:   "v1",
			Served: true,
			Kinds: []app.ManifestVersionKind{{
				Kind: "Widget",
				Admission: &app.AdmissionCapabilities{
					Validation: &app.AdmissionCapability{
						Operations: []app.AdmissionAction{app.AdmissionActionCreate, app.AdmissionActionUpdate},
					},
				},
			}},
		}},
	}
	widget := manifest.Versions[0].Kinds[0]
	fmt.Println(widget.SupportsValidation(), widget.SupportsMutation())
	// Output:
	// true false
}

// A function runs beside the controllers of an app, see simple.App.AddRunnable.
func ExampleRunnableFunc() {
	ctx, stop := context.WithCancel(context.Background())
	var runnable app.Runnable = app.RunnableFunc(func(ctx context.Context) error {
		fmt.Println("running")
		<-ctx.Done()
		fmt.Println("stopped")
		return nil
	})
	stop()
	fmt.Println(runnable.Run(ctx))
	// Output:
	// running
	// stopped
	// <nil>
}
