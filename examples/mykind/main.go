// SPDX-License-Identifier: Apache-2.0

// Mykind reports every MyKind in a cluster to another system.
package main

import (
	"context"
	"flag"
	"fmt"
	"log"
	"log/slog"
	"net"
	"net/http"

	"github.com/go-logr/logr"
	ctrl "sigs.k8s.io/controller-runtime"

	"trueup.dev/examples/mykind/controller"
	"trueup.dev/examples/mykind/infosystem"
)

func main() {
	system := flag.String(
		"info-system", "", "URL of the other system; if empty, mykind starts one and prints the requests to it",
	)
	style := flag.String("style", string(controller.Reconciler), "version of the controller to run: reconciler or watcher")
	flag.Parse()
	ctrl.SetLogger(logr.FromSlogHandler(slog.Default().Handler()))
	if err := run(ctrl.SetupSignalHandler(), *system, controller.Style(*style)); err != nil {
		log.Fatal(err)
	}
}

func run(ctx context.Context, system string, style controller.Style) error {
	cluster, err := ctrl.GetConfig()
	if err != nil {
		return err
	}
	if system == "" {
		if system, err = serve(ctx); err != nil {
			return err
		}
	}
	infoClient, err := infosystem.NewClient(system)
	if err != nil {
		return err
	}
	app, err := controller.NewApp(cluster, infoClient, style, nil)
	if err != nil {
		return err
	}
	return app.Run(ctx)
}

// serve starts an external system in this process and returns its URL.
func serve(ctx context.Context) (string, error) {
	var config net.ListenConfig
	listener, err := config.Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return "", err
	}
	server := &http.Server{
		Handler: &infosystem.Server{OnChange: func(method, name string, info infosystem.Info) {
			fmt.Printf("request: %s %s %+v\n", method, name, info)
		}},
		ReadHeaderTimeout: infosystem.Timeout,
	}
	context.AfterFunc(ctx, func() { _ = server.Close() })
	go func() {
		if err := server.Serve(listener); err != http.ErrServerClosed {
			log.Print(err)
		}
	}()
	return "http://" + listener.Addr().String(), nil
}
