import { defineConfig } from "vite";

// The server's address, for `npm run dev`: the page then comes from vite, and everything else from the server.
const server = process.env.QUIPU_SERVER ?? "http://127.0.0.1:8787";

const START = /src\/(?:app|api|markdown|parts|route|session|words)\.tsx?$|src\/pages\/(?:ask|answer|options)\.tsx$|en\.json$|node_modules\/(?:preact|@preact|marked|dompurify)/;

export default defineConfig({
  base: "./", // works under any sub-path
  build: {
    outDir: "../src/quipu/server/web",
    emptyOutDir: true,
    target: "es2022",
    modulePreload: { polyfill: false },
    assetsInlineLimit: 0, // the content security policy allows no data: addresses
    sourcemap: false,
    // What views share stays in the one file that starts the page.
    rolldownOptions: { output: { codeSplitting: { groups: [{ name: "start", test: START, includeDependenciesRecursively: true }] } } },
  },
  server: { proxy: { "/api": { target: server, changeOrigin: true } } },
});
