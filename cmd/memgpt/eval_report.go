package main

import (
	"fmt"

	"github.com/spf13/cobra"

	"memgpt/eval/chart"
)

const evalReportLong = `eval report reads the reports in DIR, which are its files that end in .json, each as eval SUITE --json prints it, and
writes DIR/report.md with its figures: each as .svg on a light background, as -dark.svg on a dark one, and as .png.
What an earlier call wrote is written over; the reports themselves are left as they are.

  memgpt eval nested-kv --data nested_kv --mode memgpt --json > results/nested-kv-memgpt.json
  memgpt eval nested-kv --data nested_kv --mode full   --json > results/nested-kv-full.json
  memgpt eval report results

Each suite has a section: nested-kv by hops as the paper's Fig. 7, docqa by documents in the prompt as Fig. 5, dmr as Table
2, opener as Table 3, and all others evidence in context by category, and evidence against tokens. What the paper printed
stands beside, drawn hollow and dashed. Runs that differ in a setting (model, window, limit, seed, data …) are never
one line: they are named by what differs. A file in DIR that ends in .json and is no such report is an error.`

func (a *app) evalReportCommand() *cobra.Command {
	var title string
	cmd := &cobra.Command{
		Use: "report DIR", Short: "write a report with figures of the runs in a directory", Args: cobra.ExactArgs(1), Long: evalReportLong,
		RunE: func(_ *cobra.Command, args []string) error {
			files, err := chart.Report(args[0], title)
			if err != nil {
				return fmt.Errorf("eval report: %w", err)
			}
			for _, f := range files {
				if _, err := fmt.Fprintln(a.out, f); err != nil {
					return err
				}
			}
			return nil
		},
	}
	cmd.Flags().StringVar(&title, "title", chart.DefaultTitle, "heading of the report")
	return cmd
}
