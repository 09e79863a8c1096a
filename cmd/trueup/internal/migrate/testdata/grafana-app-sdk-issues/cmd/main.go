// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"log"

	"github.com/grafana/grafana-app-sdk/k8s"
	"github.com/grafana/grafana-app-sdk/operator"
	"github.com/grafana/grafana-app-sdk/resource"
	"k8s.io/client-go/rest"

	"example.com/issues/app"
	"example.com/issues/v1"
)

func main() {
	config, err := rest.InClusterConfig()
	if err != nil {
		log.Fatal(err)
	}
	clients := k8s.NewClientRegistry(*config, k8s.DefaultClientConfig())
	if _, err := resource.NewTypedStore[*v1.Issue](v1.IssueKind(), clients); err != nil {
		log.Fatal(err)
	}
	runner, err := operator.NewRunner(operator.RunnerConfig{
		KubeConfig:    *config,
		MetricsConfig: operator.RunnerMetricsConfig{Enabled: true},
	})
	if err != nil {
		log.Fatal(err)
	}
	if err := runner.Run(context.Background(), app.Provider(app.Config{})); err != nil {
		log.Fatal(err)
	}
}
