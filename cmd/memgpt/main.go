// Command memgpt gives a language model an operating system's memory: chat with an agent, run one message through it,
// search and read what it remembers.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log"
	"os"
	"os/signal"
	"runtime/debug"
	"syscall"
	_ "time/tzdata" // agents have zones also where the system has no table of them

	"github.com/spf13/cobra"
)

// gcPercent is below Go's default of 100: what grows with the number of agents that wait for a model at once is memory, and
// garbage is a third of it instead of half. GOGC overrides it.
const gcPercent = 50

func main() {
	if os.Getenv("GOGC") == "" {
		debug.SetGCPercent(gcPercent)
	}
	log.SetOutput(io.Discard) // the HTTP client logs what odd servers send, between the lines of a conversation
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	context.AfterFunc(ctx, stop) // who asks twice doesn't wait for a clean end
	code := run(ctx, os.Args[1:], streams{os.Stdin, os.Stdout, os.Stderr}, os.Getenv)
	stop()
	os.Exit(code)
}

// streams are where a command reads and writes. Standard output holds results alone.
type streams struct {
	in       io.Reader
	out, err io.Writer
}

// errQuiet ends the program with status 1 when everything was said.
var errQuiet = errors.New("failed")

// run runs one command line and returns the exit status.
func run(ctx context.Context, args []string, s streams, getenv func(string) string) int {
	s.out = guarded(s.out)
	cmd := newRoot(s, getenv)
	cmd.SetArgs(args)
	err := cmd.ExecuteContext(ctx)
	if err == nil {
		return 0
	}
	if !errors.Is(err, errQuiet) {
		_, _ = fmt.Fprintf(s.err, "memgpt: %s\n", printable(err.Error()))
	}
	return 1
}

func newRoot(s streams, getenv func(string) string) *cobra.Command {
	root := &cobra.Command{
		Use: "memgpt", Short: "an operating system's memory for language models",
		Long: "memgpt runs agents that page their own memory: a small main context, and an external one that never forgets.\n" +
			"Everything is kept in one file of storage (MEMGPT_HOME). Without a configured model it looks for a local one,\n" +
			"else it uses a rule-based stand-in, and says so.",
		SilenceUsage: true, SilenceErrors: true,
		CompletionOptions: cobra.CompletionOptions{HiddenDefaultCmd: true},
	}
	root.SetIn(s.in)
	root.SetOut(s.out)
	root.SetErr(s.err)
	a := &app{streams: s, getenv: getenv}
	root.PersistentFlags().StringVar(&a.agentName, "agent", "default", "name of the agent")
	root.PersistentFlags().StringVar(&a.modelFlag, "model", "", "[provider:]model that answers this time, instead of MEMGPT_MODEL and the agent's own")
	root.AddCommand(a.chatCommand(), a.runCommand(), a.searchCommand(), a.logCommand(), a.contextCommand(), a.importCommand(),
		a.loadCommand(), a.indexCommand(), a.archiveCommand(), a.forgetCommand(), a.agentsCommand(), a.costCommand(), a.eventCommand(),
		a.eventsCommand(), a.blocksCommand(), a.tidyCommand(), a.daemonCommand(), a.benchCommand(), a.evalCommand(), a.modelsCommand())
	explainUse(root)
	return root
}

// explainUse has each command say how it is used where it is used otherwise, and groups of commands refuse one that they
// don't have.
func explainUse(cmd *cobra.Command) {
	if cmd.HasParent() && cmd.HasSubCommands() && cmd.Args == nil {
		cmd.Args = cobra.NoArgs
		cmd.FParseErrWhitelist.UnknownFlags = true // of a command that it doesn't have, which is said first
		cmd.RunE = func(cmd *cobra.Command, _ []string) error { return cmd.Help() }
	}
	if check := cmd.Args; check != nil {
		cmd.Args = func(cmd *cobra.Command, args []string) error {
			if err := check(cmd, args); err != nil {
				return fmt.Errorf("%w; it is used so: %s (more with --help)", err, cmd.UseLine())
			}
			return nil
		}
	}
	for _, sub := range cmd.Commands() {
		explainUse(sub)
	}
}
