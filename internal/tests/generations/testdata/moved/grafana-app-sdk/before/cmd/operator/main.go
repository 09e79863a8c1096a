package main

import (
	"context"
	"os"
	"os/signal"
	"strconv"

	"k8s.io/client-go/tools/clientcmd"

	"github.com/grafana/grafana-app-sdk/k8s"
	"github.com/grafana/grafana-app-sdk/operator"

	"example.com/links/pkg/app"
)

func main() {
	kubeConfig, err := clientcmd.BuildConfigFromFlags("", os.Getenv("KUBECONFIG"))
	if err != nil {
		panic(err)
	}
	port, err := strconv.Atoi(os.Getenv("WEBHOOK_PORT"))
	if err != nil {
		panic(err)
	}
	runner, err := operator.NewRunner(operator.RunnerConfig{
		KubeConfig: *kubeConfig,
		WebhookConfig: operator.RunnerWebhookConfig{
			Port: port,
			TLSConfig: k8s.TLSConfig{
				CertPath: os.Getenv("WEBHOOK_CERT_PATH"), KeyPath: os.Getenv("WEBHOOK_KEY_PATH"),
			},
		},
		MetricsConfig: operator.RunnerMetricsConfig{Enabled: true},
	})
	if err != nil {
		panic(err)
	}
	ctx, cancel := signal.NotifyContext(context.Background(), os.Interrupt)
	defer cancel()
	if err := runner.Run(ctx, app.Provider(nil)); err != nil {
		panic(err)
	}
}
